// The package, which is CommonJS, has no types of its own.
declare module 'snappyjs' {
  const snappy: {
    compress(payload: Uint8Array): Uint8Array;
    /** @throws when the result would be longer than `maxLength`, or the bytes are not valid. */
    uncompress(payload: Uint8Array, maxLength?: number): Uint8Array;
  };
  export default snappy;
}
