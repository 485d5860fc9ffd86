// What looks random to a workflow and is the same in every replay. Values depend on how many commands came before, so that code
// that is changed later on leaves the earlier ones as they were.

export class SeededValues {
  readonly #seed: string;
  #place = 0;
  #taken = 0;

  constructor(seed: string) {
    this.#seed = seed;
  }

  /** @param place how many commands there are. @returns a whole number from 0 to 2^32 - 1 */
  next(place: number): number {
    if (place !== this.#place) {
      this.#place = place;
      this.#taken = 0;
    }
    return mixed(`${this.#seed}/${place}/${this.#taken++}`);
  }
}

/** A version 4 UUID (RFC 9562) of four numbers of 32 bits. */
export function uuidOf(next: () => number): string {
  const hex = Array.from({ length: 4 }, () => next().toString(16).padStart(8, '0')).join('');
  const variant = ((Number.parseInt(hex[16] ?? '0', 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
}

/** FNV-1a over the text, then the finalizer of MurmurHash3: texts that differ little give numbers that differ much. */
function mixed(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
