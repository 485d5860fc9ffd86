// Entry point `pulsework/decorators`: sugar over defineHandler(). A decorator only leaves a record on the class, under a
// key that core exports; the runtime reads that and nothing else, so all logic and all checks stay in one place.
export { Handler } from './handler.js';
export type { HandlerClassDefaults } from './handler.js';
export { Subscribe } from './subscribe.js';
export type { BatchMethodDecorator, HandlerMethodDecorator, SubscribeOptions } from './subscribe.js';
