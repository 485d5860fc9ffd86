// A vitest reporter that counts. What vitest keeps apart (tests, files that cannot be loaded, errors outside any test)
// is one number here, each skipped test must say why, and each failure is one line that says what and why.

export class SummaryReporter {
  #passed = 0;
  #ended = false;
  /** @type {{ name: string, reason: string | undefined }[]} */
  #skips = [];
  /** @type {string[]} */
  #failures = [];
  /** @type {string[]} */
  #secondTries = [];

  onTestRunEnd(testModules, unhandledErrors) {
    this.#ended = true;
    this.#fail('outside any test', unhandledErrors);
    for (const testModule of testModules) {
      this.#fail(testModule.relativeModuleId, testModule.errors());
      for (const suite of testModule.children.allSuites()) this.#fail(nameOf(testModule, suite), suite.errors());
      for (const test of testModule.children.allTests()) this.#count(testModule, test);
    }
  }

  get counts() {
    return { passed: this.#passed, failed: this.#failures.length, skipped: this.#skips.length };
  }

  skipLines() {
    return this.#skips.map(({ name, reason }) => `skipped: ${name}: ${reason ?? 'no reason given'}`);
  }

  /** What passed at its second try only, and what failed: the last lines of a long output are those that are read. */
  failureLines() {
    return [...this.#secondTries, ...this.#failures];
  }

  /** What makes a run fail although no test did. With a filter, tests are left out without a reason of their own. */
  problems({ wholeSuite }) {
    const problems = [];
    if (!this.#ended) problems.push('the test run did not end');
    else if (this.#passed + this.#failures.length === 0) problems.push('no test ran');
    if (wholeSuite && this.#skips.some(({ reason }) => reason === undefined)) {
      problems.push('a skipped test must say why: use context.skip(condition, reason)');
    }
    return problems;
  }

  #fail(name, errors) {
    for (const error of errors) this.#failures.push(`failed: ${name}: ${firstLines(error)}`);
  }

  #count(testModule, test) {
    const result = test.result();
    const name = nameOf(testModule, test);
    if (result.state === 'skipped') this.#skips.push({ name, reason: result.note });
    else if (result.state === 'passed') {
      this.#passed += 1;
      if ((test.diagnostic()?.retryCount ?? 0) > 0)
        this.#secondTries.push(`second try: ${name}: ${firstLines(result.errors?.[0])}`);
    }
    // A test that never ended (its worker died) is not a passed one. One test is one failure, whatever it was tried.
    else this.#fail(name, [result.errors?.at(-1)]);
  }
}

function nameOf(testModule, { fullName }) {
  return `${testModule.relativeModuleId} > ${fullName}`;
}

/** The first lines of an error's message: enough to know the fault, its whole text stands further up. */
function firstLines(error) {
  if (error === undefined) return 'it did not end';
  const text = String(error.message ?? error).split('\n');
  return text.slice(0, 3).join(' ').slice(0, 300);
}
