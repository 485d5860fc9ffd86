// What error codes of the file system mean for a store, and what a person can do about them.
import type { ErrorCode } from './errors.js';

export const FILE_SYSTEM_CODES: Readonly<Record<string, ErrorCode>> = {
  ENOSPC: 'STORE_FULL',
  EDQUOT: 'STORE_FULL',
  EFBIG: 'STORE_FULL',
  EACCES: 'STORE_NOT_WRITABLE',
  EPERM: 'STORE_NOT_WRITABLE',
  EROFS: 'STORE_NOT_WRITABLE',
  ENOENT: 'STORE_NOT_WRITABLE',
  ENOTDIR: 'STORE_NOT_WRITABLE',
  EISDIR: 'STORE_NOT_WRITABLE',
};

export const FILE_SYSTEM_REMEDIES: Readonly<Partial<Record<ErrorCode, string>>> = {
  STORE_FULL: 'make room on its disk',
  STORE_NOT_WRITABLE: 'its folder must exist and this process must be allowed to write there',
};
