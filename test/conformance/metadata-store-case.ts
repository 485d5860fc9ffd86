// The shape of a conformance case of metadata stores, and how cases write and read.
import type { MetadataStore } from 'pulsework/sqlite';

export interface MetadataStoreCase {
  readonly title: string;
  /** @param store open, and holding nothing */
  readonly run: (store: MetadataStore) => Promise<void>;
}

export const CONFLICT = { code: 'STORE_VERSION_CONFLICT' };

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
export const text = (value: Uint8Array | undefined): string => new TextDecoder().decode(value);

export async function pathsOf(found: Promise<readonly { readonly path: string }[]>): Promise<readonly string[]> {
  return (await found).map(({ path }) => path);
}

/** A promise for what a listener will say. */
export function heard<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T | Promise<T>) => void } {
  let resolve: (value: T | Promise<T>) => void = () => undefined;
  const promise = new Promise<T>((settle) => (resolve = settle));
  return { promise, resolve };
}
