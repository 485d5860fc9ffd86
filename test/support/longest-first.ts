// The order of test files: those that are known to take long come first, so that none of them is left over at the end while
// the other processors have nothing to do. A fresh clone has no times of its own to go by.
import type { TestSpecification } from 'vitest/node';
import { BaseSequencer } from 'vitest/node';

const LONGEST = [
  'own-broker-transactions.test.ts',
  'own-broker.test.ts',
  'conformance/pulsar.test.ts',
  'conformance/wire.test.ts',
  'integration/examples.test.ts',
  'golden-traces.test.ts',
  'wire-topics.test.ts',
  'soak.test.ts',
  'crash-programs.test.ts',
  'document-programs.test.ts',
  'process-death.test.ts',
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = LONGEST.findIndex((name) => moduleId.endsWith(name));
      return at < 0 ? LONGEST.length : at;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}
