// HTTP by Node's own fetch.
import type { HttpFetch } from '../ports/http.js';

export const systemHttp: HttpFetch = async ({ method, url, headers = {}, body, signal, maxBytes }) => {
  const answer = await fetch(url, { method, headers, body: body ?? null, signal, redirect: 'manual' });
  return { status: answer.status, body: await textOf(answer, maxBytes) };
};

async function textOf({ body }: Response, maxBytes: number): Promise<string> {
  if (body === null) return '';
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    // Leaving the loop ends the request.
    if (bytes > maxBytes) throw new Error(`the answer is longer than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
