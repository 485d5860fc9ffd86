// A folder and topics on a real broker for services that tests kill, and the lives that were lived there.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Job, ServiceSettings } from './service-jobs.js';
import { ServicePlace } from './service-place.js';
import type { BrokerAddress } from './service-place.js';
import { ServiceProcess } from './service-process.js';
import type { ServiceLife } from './service-process.js';

const LOOK_AGAIN_MS = 100;
/** Small, so that it is full within a second. */
const HEAP_MB = 64;

export class ServiceWorld {
  readonly place: ServicePlace;
  readonly lives: ServiceLife[] = [];
  readonly #folder: string;
  #living: ServiceProcess | undefined;

  private constructor(place: ServicePlace) {
    this.place = place;
    this.#folder = mkdtempSync(join(tmpdir(), 'pulsework-death-'));
  }

  static async prepare(broker: BrokerAddress, jobs: readonly Job[]): Promise<ServiceWorld> {
    const place = await ServicePlace.prepare(broker);
    await place.publish(jobs);
    return new ServiceWorld(place);
  }

  /** Lines of all lives. */
  get told(): readonly string[] {
    return this.lives.flatMap(({ told }) => told);
  }

  /** How many ended otherwise than they were asked to. */
  get deaths(): number {
    return this.lives.filter(({ exit }) => exit !== 0).length;
  }

  settings(rest: Partial<ServiceSettings> & Pick<ServiceSettings, 'maxDeliveries'>): ServiceSettings {
    const { serviceUrl, jobs, results } = this.place;
    return { serviceUrl, jobs, results, options: {}, isIdempotent: false, ...rest };
  }

  /** For an AttemptStore. */
  get attemptsPath(): string {
    return join(this.#folder, 'attempts.log');
  }

  /** A process from its start to its death; one that works off everything first is asked to end. */
  async live(settings: ServiceSettings): Promise<ServiceLife> {
    const service = await ServiceProcess.start(settings, { heapMb: HEAP_MB });
    this.#living = service;
    while (!service.hasEnded && (await this.place.backlog()) > 0)
      await Promise.race([service.ended, sleep(LOOK_AGAIN_MS)]);
    const life = await service.terminate();
    this.lives.push(life);
    return life;
  }

  async end(): Promise<void> {
    await this.#living?.kill();
    rmSync(this.#folder, { recursive: true });
  }
}
