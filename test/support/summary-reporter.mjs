// A vitest reporter that counts. What vitest keeps apart (tests, files that cannot be loaded, errors outside any test)
// is one number here, and each skipped test must say why.

export class SummaryReporter {
  #passed = 0;
  #failed = 0;
  #ended = false;
  /** @type {{ name: string, reason: string | undefined }[]} */
  #skips = [];

  onTestRunEnd(testModules, unhandledErrors) {
    this.#ended = true;
    this.#failed += unhandledErrors.length;
    for (const testModule of testModules) {
      this.#failed += testModule.errors().length;
      for (const suite of testModule.children.allSuites()) this.#failed += suite.errors().length;
      for (const test of testModule.children.allTests()) this.#count(testModule, test);
    }
  }

  get counts() {
    return { passed: this.#passed, failed: this.#failed, skipped: this.#skips.length };
  }

  skipLines() {
    return this.#skips.map(({ name, reason }) => `skipped: ${name}: ${reason ?? 'no reason given'}`);
  }

  /** What makes a run fail although no test did. With a filter, tests are left out without a reason of their own. */
  problems({ wholeSuite }) {
    const problems = [];
    if (!this.#ended) problems.push('the test run did not end');
    else if (this.#passed + this.#failed === 0) problems.push('no test ran');
    if (wholeSuite && this.#skips.some(({ reason }) => reason === undefined)) {
      problems.push('a skipped test must say why: use context.skip(condition, reason)');
    }
    return problems;
  }

  #count(testModule, test) {
    const result = test.result();
    if (result.state === 'passed') this.#passed += 1;
    else if (result.state === 'skipped') {
      this.#skips.push({ name: `${testModule.relativeModuleId} > ${test.fullName}`, reason: result.note });
    }
    // A test that never ended (its worker died) is not a passed one.
    else this.#failed += 1;
  }
}
