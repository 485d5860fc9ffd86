// What decorators leave on a class: the runtime reads this record and nothing else.
import { HANDLER_CLASS, defineHandler, on, poison, skip, success, topic } from 'pulsework';
import type { HandlerClassDefinition, Outcome } from 'pulsework';
import { Handler, Subscribe } from 'pulsework/decorators';
import { expect, it } from 'vitest';

const orders = topic('orders');
const refunds = topic('refunds');

function recordOf(handlerClass: object): HandlerClassDefinition | undefined {
  return (handlerClass as { [HANDLER_CLASS]?: HandlerClassDefinition })[HANDLER_CLASS];
}

function sourcesOf(handlerClass: object): [method: unknown, source: unknown][] {
  return (recordOf(handlerClass)?.methods ?? []).map(({ method, source }) => [method, source]);
}

it('leaves the defaults of @Handler and each method with its source and options', () => {
  @Handler({ subscription: 'billing', concurrency: 4 })
  class Billing {
    @Subscribe(orders, { type: 'key-shared' })
    charge(): Outcome {
      return success();
    }
  }

  expect(recordOf(Billing)).toEqual({
    defaults: { subscription: 'billing', concurrency: 4 },
    methods: [{ method: 'charge', source: orders, options: { type: 'key-shared' } }],
  });
});

it('keeps what defineHandler would be given, option by option and as the same objects', () => {
  const onError = [on(RangeError, poison)];
  const options = { subscription: 'own', onError, publishes: [refunds], timeoutMs: 5, redact: [/secret/] };
  class Billing {
    @Subscribe(orders, options)
    charge(): Outcome {
      return success();
    }
  }
  const { subscription, ...expected } = options;
  const defined = defineHandler({ name: 'Billing.charge', source: orders, handle: () => success(), ...options });

  const left = recordOf(Billing)?.methods[0]?.options;
  expect(left).toBe(options);
  expect(defined.options).toEqual(expected);
  expect(defined.subscription).toBe(subscription);
});

it('is there for a class without @Handler, whose absence the runtime reports', () => {
  class Forgotten {
    @Subscribe(orders)
    charge(): Outcome {
      return success();
    }
  }

  expect(recordOf(Forgotten)?.defaults).toBeUndefined();
  expect(sourcesOf(Forgotten)).toEqual([['charge', orders]]);
});

it('does not call the class or the method', () => {
  let calls = 0;
  @Handler()
  class Counting {
    constructor() {
      calls += 1;
    }
    @Subscribe(orders)
    charge(): Outcome {
      calls += 1;
      return success();
    }
  }

  expect(recordOf(Counting)?.methods).toHaveLength(1);
  expect(calls).toBe(0);
});

it('is not among the enumerable properties of the class', () => {
  @Handler()
  class Quiet {}

  expect(Object.keys(Quiet)).toEqual([]);
  expect(Object.getOwnPropertySymbols(Quiet)).toContain(HANDLER_CLASS);
});

it('takes methods named by a symbol', () => {
  const charge = Symbol('charge');
  class Billing {
    @Subscribe(orders)
    [charge](): Outcome {
      return success();
    }
  }

  expect(sourcesOf(Billing)).toEqual([[charge, orders]]);
});

it('keeps every @Subscribe of one method', () => {
  class Billing {
    @Subscribe(orders)
    @Subscribe('refunds')
    charge(): Outcome {
      return success();
    }
  }

  expect(sourcesOf(Billing)).toEqual([
    ['charge', 'refunds'],
    ['charge', orders],
  ]);
});

class Base {
  @Subscribe(orders)
  charge(): Outcome {
    return success();
  }
  @Subscribe(refunds)
  refund(): Outcome {
    return success();
  }
}

it('gives a subclass the methods of its parents', () => {
  @Handler({ subscription: 'child' })
  class Child extends Base {
    @Subscribe('more')
    more(): Outcome {
      return success();
    }
  }

  expect(sourcesOf(Child)).toEqual([
    ['charge', orders],
    ['refund', refunds],
    ['more', 'more'],
  ]);
});

it('gives a subclass that decorates only itself the methods of its parents', () => {
  @Handler({ subscription: 'child' })
  class Child extends Base {}

  expect(Object.hasOwn(Child, HANDLER_CLASS)).toBe(true);
  expect(sourcesOf(Child)).toEqual(sourcesOf(Base));
});

it('lets a decorated method that overrides replace the parent’s', () => {
  class Child extends Base {
    @Subscribe('special-orders')
    override charge(): Outcome {
      return skip('special');
    }
  }

  expect(sourcesOf(Child)).toEqual([
    ['refund', refunds],
    ['charge', 'special-orders'],
  ]);
});

it('leaves the parent’s record alone when a subclass adds and replaces', () => {
  const before = recordOf(Base);
  @Handler({ subscription: 'child' })
  class Child extends Base {
    @Subscribe('special-orders')
    override charge(): Outcome {
      return success();
    }
  }

  expect(recordOf(Child)).not.toBe(before);
  expect(recordOf(Base)).toBe(before);
  expect(before).toEqual({
    defaults: undefined,
    methods: [
      { method: 'charge', source: orders, options: {} },
      { method: 'refund', source: refunds, options: {} },
    ],
  });
});

it('does not hand the parent’s @Handler to a subclass with methods of its own', () => {
  @Handler({ subscription: 'parent' })
  class Parent extends Base {}
  class Child extends Parent {
    @Subscribe('more')
    more(): Outcome {
      return success();
    }
  }

  expect(recordOf(Child)?.defaults).toBeUndefined();
  expect(recordOf(Parent)?.defaults).toEqual({ subscription: 'parent' });
});

it('keeps two classes with one parent apart', () => {
  class One extends Base {
    @Subscribe('one')
    one(): Outcome {
      return success();
    }
  }
  class Two extends Base {
    @Subscribe('two')
    two(): Outcome {
      return success();
    }
  }

  expect(sourcesOf(One).map(([method]) => method)).toEqual(['charge', 'refund', 'one']);
  expect(sourcesOf(Two).map(([method]) => method)).toEqual(['charge', 'refund', 'two']);
});

it('refuses a call that is not a legacy method decorator, and says how to compile', () => {
  const asStandardDecorator = Subscribe(orders) as unknown as (method: object, context: object) => void;
  const method = (): Outcome => success();

  expect(() => asStandardDecorator(method, { kind: 'method', name: 'charge' })).toThrow(
    /"experimentalDecorators": true/,
  );
  expect(Object.hasOwn(Function, HANDLER_CLASS)).toBe(false);
});

it('records a static method on its own class, where the runtime can refuse it', () => {
  class Odd {
    static charge(): Outcome {
      return success();
    }
  }
  const onStatic = Subscribe(orders) as unknown as (target: object, name: string, descriptor: object) => void;
  onStatic(Odd, 'charge', {});

  expect(sourcesOf(Odd)).toEqual([['charge', orders]]);
  expect(Object.hasOwn(Function, HANDLER_CLASS)).toBe(false);
});
