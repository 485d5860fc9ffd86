// Frames: how commands, and the messages behind SEND and MESSAGE, lie in the byte stream.
//   simple:  u32 size, u32 command size, command
//   payload: the same, then [u16 0x0e02, u32 size, broker's metadata] [u16 0x0e01, u32 CRC-32C] u32 size, metadata, payload
import { COMMANDS, commandNamed } from './commands.js';
import type { Command, CommandBody, CommandName } from './commands.js';
import { crc32c } from './crc32c.js';
import { frameMemory } from './frame-memory.js';
import { BROKER_ENTRY_METADATA, MESSAGE_METADATA } from './message-metadata.js';
import type { MessageMetadata } from './message-metadata.js';
import type { MessageType } from './message-type.js';
import { ProtoReader } from './proto-reader.js';
import { ProtoWriter } from './proto-writer.js';
import { WireFormatError } from './wire-format-error.js';

const CHECKSUM_MARK = 0x0e01;
const BROKER_METADATA_MARK = 0x0e02;
/** Field 1 of the command: its number. */
const TYPE_KEY = 1 << 3;
/** Bytes of the total size, of the command size. */
export const SIZE_BYTES = 4;

/** Reused for every frame: nothing here waits between the first write and the copy. */
const writer = new ProtoWriter();

/** A frame without a payload. */
export function encodeCommand<N extends CommandName>(name: N, body: CommandBody<N>): Buffer {
  beginFrame(name, body);
  writer.uint32BEAt(0, writer.length - SIZE_BYTES);
  return writer.copy();
}

/** A SEND frame with its checksum. It stays the same when it is sent again over another connection. */
export function encodeSend(send: CommandBody<'SEND'>, metadata: MessageMetadata, payload: Uint8Array): Buffer {
  beginFrame('SEND', send);
  writer.uint16BE(CHECKSUM_MARK);
  const checksumAt = writer.length;
  writer.uint32BE(0);
  const metadataAt = writer.length;
  writer.uint32BE(0);
  MESSAGE_METADATA.writeFields(writer, metadata);
  writer.uint32BEAt(metadataAt, writer.length - metadataAt - SIZE_BYTES);
  const headLength = writer.length;
  writer.uint32BEAt(0, headLength + payload.length - SIZE_BYTES);
  const frame = frameMemory(headLength + payload.length);
  frame.set(writer.view());
  frame.set(payload, headLength);
  frame.writeUInt32BE(crc32c(frame, metadataAt), checksumAt);
  return frame;
}

/** Bytes of metadata and payload, with what frames them: what brokers limit. */
export function sectionBytesOf(sendFrame: Buffer): number {
  return sendFrame.length - 2 * SIZE_BYTES - sendFrame.readUInt32BE(SIZE_BYTES);
}

/** Whether a SEND frame still has the checksum it was made with. */
export function isIntactSend(frame: Buffer): boolean {
  const checksumAt = 2 * SIZE_BYTES + frame.readUInt32BE(SIZE_BYTES) + 2;
  return crc32c(frame, checksumAt + SIZE_BYTES) === frame.readUInt32BE(checksumAt);
}

function beginFrame<N extends CommandName>(name: N, body: CommandBody<N>): void {
  const { number, body: type } = COMMANDS[name];
  writer.reset();
  writer.uint32BE(0);
  writer.uint32BE(0);
  writer.long(TYPE_KEY);
  writer.long(number);
  writer.long(((number << 3) | 2) >>> 0);
  // The name says which body belongs to it; a table of types cannot express that to the compiler.
  (type as unknown as MessageType<CommandBody<N>>).write(writer, body);
  writer.uint32BEAt(SIZE_BYTES, writer.length - 2 * SIZE_BYTES);
}

/** A frame that came in. `payload` is what stands behind the command. */
export interface Frame {
  /** Undefined for a command that is not known here: to be ignored. */
  readonly command: Command | undefined;
  readonly payload: Buffer;
}

/** @param frame without its total size. @throws WireFormatError naming the command and the field. */
export function decodeFrame(frame: Buffer): Frame {
  if (frame.length < SIZE_BYTES) throw new WireFormatError(`a frame of ${frame.length} bytes`);
  const commandEnd = SIZE_BYTES + frame.readUInt32BE(0);
  if (commandEnd > frame.length) {
    throw new WireFormatError(`a command of ${commandEnd - SIZE_BYTES} bytes in a frame of ${frame.length}`);
  }
  return { command: decodeCommand(frame, commandEnd), payload: frame.subarray(commandEnd) };
}

function decodeCommand(frame: Buffer, end: number): Command | undefined {
  const reader = new ProtoReader(frame, SIZE_BYTES, end);
  let name: CommandName | undefined;
  try {
    if (reader.key() !== TYPE_KEY) throw new WireFormatError('it does not start with its number');
    const number = reader.uint32();
    name = commandNamed(number);
    if (name === undefined) return undefined;
    while (!reader.atEnd) {
      const key = reader.key();
      if (key === ((number << 3) | 2)) return { name, body: COMMANDS[name].body.read(reader) } as Command;
      reader.skipField(key & 7);
    }
    throw new WireFormatError(`${name} has no body`);
  } catch (error) {
    if (!(error instanceof WireFormatError)) throw error;
    // Errors of a field name it, and its command, themselves.
    if (name !== undefined && error.message.startsWith(name)) throw error;
    throw new WireFormatError(`${name ?? 'a command'}: ${error.message}`);
  }
}

/** An entry as it stands in a MESSAGE frame: metadata and the payload, still compressed. */
export interface Entry {
  readonly metadata: MessageMetadata;
  readonly payload: Buffer;
}

/** Why an entry cannot be used; the number goes into the acknowledgement that gets rid of it. */
export interface CorruptEntry {
  readonly validationError: number;
  readonly reason: string;
}

export const VALIDATION_ERRORS = {
  uncompressedSize: 0,
  decompression: 1,
  checksum: 2,
  batch: 3,
  decryption: 4,
} as const;

/** Reads what stands behind a MESSAGE command. Never throws: one bad entry must not end the connection. */
export function decodeEntry(section: Buffer): Entry | CorruptEntry {
  try {
    return readEntry(section);
  } catch (error) {
    if (!(error instanceof WireFormatError)) throw error;
    return { validationError: VALIDATION_ERRORS.checksum, reason: error.message };
  }
}

function readEntry(section: Buffer): Entry | CorruptEntry {
  let at = 0;
  if (markAt(section, at) === BROKER_METADATA_MARK) {
    const size = uint32At(section, at + 2);
    const end = at + 6 + size;
    if (end > section.length) throw new WireFormatError(`broker metadata of ${size} bytes`);
    BROKER_ENTRY_METADATA.decode(section, at + 6, end);
    at = end;
  }
  const isChecked = markAt(section, at) === CHECKSUM_MARK;
  if (isChecked) {
    const expected = uint32At(section, at + 2);
    at += 6;
    const found = crc32c(section, at);
    if (found !== expected) {
      const reason = `the checksum is ${found.toString(16)}, the entry says ${expected.toString(16)}`;
      return { validationError: VALIDATION_ERRORS.checksum, reason };
    }
  }
  const size = uint32At(section, at);
  const metadataEnd = at + SIZE_BYTES + size;
  if (metadataEnd > section.length) throw new WireFormatError(`metadata of ${size} bytes`);
  try {
    const metadata = MESSAGE_METADATA.decode(section, at + SIZE_BYTES, metadataEnd);
    return { metadata, payload: section.subarray(metadataEnd) };
  } catch (error) {
    if (!isChecked || !(error instanceof WireFormatError)) throw error;
    // With a right checksum it is what the producer wrote.
    return { validationError: VALIDATION_ERRORS.batch, reason: error.message };
  }
}

function markAt(section: Buffer, at: number): number {
  return at + 2 <= section.length ? section.readUInt16BE(at) : -1;
}

function uint32At(section: Buffer, at: number): number {
  if (at + SIZE_BYTES > section.length) throw new WireFormatError('an entry that ends inside its header');
  return section.readUInt32BE(at);
}
