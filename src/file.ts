// Entry point `pulsework/file`: stores in files. Apart from the main one, which needs no file system.
import { checkFileAttemptStoreOptions, FileAttemptStore } from './stores/file/file-attempt-store.js';
import type { FileAttemptStoreOptions } from './stores/file/file-attempt-store.js';
import type { AttemptStore } from './ports/attempt-store.js';
import { systemProcessTable } from './system/process-table.js';

export type { FileAttemptStoreOptions } from './stores/file/file-attempt-store.js';

/**
 * Attempts in an append-only file: they survive the death of this process, not that of the machine. Opened and closed by
 * the runtimes that are given it. In one thread of a process only.
 * @throws ConfigurationError on a wrong or unknown option.
 */
export function fileAttemptStore(options: FileAttemptStoreOptions): AttemptStore {
  checkFileAttemptStoreOptions(options);
  return new FileAttemptStore(options, systemProcessTable);
}
