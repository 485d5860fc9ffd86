// Messages that are none, as JavaScript or `any` let through, each with what every publisher says of it.

/** A message that is one. */
export const GOOD = { payload: new Uint8Array(1), properties: {} };

export const WRONG_MESSAGES: readonly (readonly [message: unknown, says: RegExp])[] = [
  [undefined, /a message must be an object/],
  [null, /a message must be an object/],
  ['text', /a message must be an object/],
  [{ properties: {} }, /"payload" must be bytes \(Uint8Array\) or null, got undefined/],
  [{ payload: 'secret', properties: {} }, /"payload" must be bytes \(Uint8Array\) or null, got a text/],
  [{ payload: [1, 2], properties: {} }, /"payload" must be bytes/],
  [{ payload: new Uint16Array(2), properties: {} }, /"payload" must be bytes/],
  [{ payload: null }, /"properties" must be an object of texts, got undefined/],
  [{ payload: null, properties: null }, /"properties" must be an object of texts/],
  [{ payload: null, properties: ['a'] }, /"properties" must be an object of texts/],
  [{ payload: null, properties: { a: 1 } }, /property "a" must be a text, got 1/],
  [{ payload: null, properties: { a: undefined } }, /property "a" must be a text, got undefined/],
  [{ ...GOOD, key: 5 }, /"key" must be a text or bytes \(Uint8Array\), got 5/],
  [{ ...GOOD, key: null }, /"key" must be a text or bytes/],
  [{ ...GOOD, orderingKey: 'x' }, /"orderingKey" must be bytes \(Uint8Array\), got a text/],
  [{ ...GOOD, eventTimeMs: new Date(0) }, /"eventTimeMs" must be a number of milliseconds/],
  [{ ...GOOD, eventTimeMs: Number.NaN }, /"eventTimeMs" must be a number of milliseconds, got NaN/],
  [{ ...GOOD, deliverAtMs: 'soon' }, /"deliverAtMs" must be a number of milliseconds/],
];
