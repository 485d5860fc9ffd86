// Several hosts that stand for one service: one at random is asked first, the next one when a host fails, and the one
// that worked stays the first.
import { TransportError, toError } from '../../core/errors.js';
import type { ErrorCode } from '../../core/errors.js';
import { hostPortText } from './service-url.js';
import type { HostPort } from './service-url.js';

/** What no other host can help with. */
const OF_THIS_SIDE: readonly ErrorCode[] = ['ALREADY_CLOSED', 'CREDENTIALS_UNAVAILABLE'];

export class HostRotation {
  readonly #hosts: readonly HostPort[];
  #first: number;

  /** @param hosts at least one. @param random a number in [0, 1). */
  constructor(hosts: readonly HostPort[], random: () => number) {
    this.#hosts = hosts;
    this.#first = Math.floor(random() * hosts.length) % hosts.length;
  }

  /**
   * What `reach` gives for the first host that does not fail; each host is tried once. A host that refuses for good is
   * passed over as well: it may be the only one that is set up wrongly.
   * @throws TransportError that names what each host said, `retriable` when one of them failed for a passing reason.
   */
  async reach<T>(reach: (host: HostPort) => Promise<T>): Promise<T> {
    const begin = this.#first;
    const failures: { readonly host: HostPort; readonly error: TransportError }[] = [];
    for (let tried = 0; tried < this.#hosts.length; tried++) {
      const index = (begin + tried) % this.#hosts.length;
      const host = this.#hosts[index] as HostPort;
      try {
        const reached = await reach(host);
        this.#first = index;
        return reached;
      } catch (error) {
        if (!(error instanceof TransportError) || OF_THIS_SIDE.includes(error.code)) throw error;
        failures.push({ host, error });
      }
    }
    throw noneOf(failures.map(({ host, error }) => ({ host: hostPortText(host), error })));
  }
}

function noneOf(failures: readonly { readonly host: string; readonly error: TransportError }[]): Error {
  const errors = failures.map(({ error }) => error);
  const telling = errors.find(({ retriable }) => retriable) ?? errors[0];
  if (telling === undefined || errors.length === 1) return toError(telling);
  const said = failures.map(({ host, error }) => `${host}: ${error.message}`).join('; ');
  const text = `none of the ${errors.length} hosts of the service can be used: ${said}`;
  return new TransportError(telling.code, text, { retriable: telling.retriable, cause: telling });
}
