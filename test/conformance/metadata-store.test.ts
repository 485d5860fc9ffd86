// The cases that every MetadataStore must pass, on the one in memory and on SQLite.
import type { MetadataStore } from 'pulsework/sqlite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { MetadataPlace } from '../support/metadata-places.js';
import { metadataPlaces } from '../support/metadata-places.js';
import { metadataStoreCases } from './metadata-store-cases.js';

describe.each(Object.entries(metadataPlaces))('a metadata store (%s)', (_name, newPlace) => {
  let place: MetadataPlace;
  let store: MetadataStore;

  beforeEach(() => {
    place = newPlace();
    store = place.newStore();
  });

  afterEach(async () => {
    await store.close();
    place.end();
  });

  it.each(metadataStoreCases)('$title', async ({ run }) => {
    await store.open();
    await run(store);
  });

  it('refuses to be used before it is open', async () => {
    const notOpen = { code: 'ILLEGAL_STATE' };

    await expect(store.get('/a')).rejects.toMatchObject(notOpen);
    await expect(store.put('/a', new Uint8Array())).rejects.toMatchObject(notOpen);
    await expect(store.watch('/a', () => undefined)).rejects.toMatchObject(notOpen);
  });
});
