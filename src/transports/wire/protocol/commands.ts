// The commands of Pulsar's binary protocol (4.0) that this client speaks. The number of a command is also the number of
// the field that holds its body.
import { COMMANDS_ON_CONNECTION } from './connection-commands.js';
import type { Decoded, MessageType } from './message-type.js';
import { COMMANDS_ON_NAMESPACE } from './namespace-commands.js';
import { COMMANDS_ON_SCHEMA } from './schema-commands.js';
import { COMMANDS_ON_TOPIC } from './topic-commands.js';
import { COMMANDS_ON_TRANSACTIONS } from './transaction-commands.js';

export interface CommandType<T extends object> {
  readonly number: number;
  readonly body: MessageType<T>;
}

export const COMMANDS = {
  ...COMMANDS_ON_CONNECTION,
  ...COMMANDS_ON_TOPIC,
  ...COMMANDS_ON_NAMESPACE,
  ...COMMANDS_ON_SCHEMA,
  ...COMMANDS_ON_TRANSACTIONS,
} as const;

export type CommandName = keyof typeof COMMANDS;
export type CommandBody<N extends CommandName> = Decoded<(typeof COMMANDS)[N]['body']>;

/** One command with its name: narrow it by `name`. */
export type Command = { readonly [N in CommandName]: { readonly name: N; readonly body: CommandBody<N> } }[CommandName];

const BY_NUMBER = new Map<number, CommandName>(
  Object.entries(COMMANDS).map(([name, { number }]) => [number, name as CommandName]),
);

/** Undefined when a newer broker sends what is not known here. */
export function commandNamed(number: number): CommandName | undefined {
  return BY_NUMBER.get(number);
}
