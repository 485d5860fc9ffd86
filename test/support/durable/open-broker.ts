// Opens a durable broker and says how that went, for another user. Argument: its folder.
import { sqliteStore } from 'pulsework/sqlite';

const [dir = ''] = process.argv.slice(2);
try {
  const store = sqliteStore({ dir });
  await store.open();
  await store.close();
  console.log(JSON.stringify({ opened: true }));
} catch (error) {
  console.log(JSON.stringify({ code: (error as { code?: string }).code, message: String(error) }));
}
