/** The version of this package, written on dead letters. A test compares it with package.json. */
export const VERSION = '0.0.0';
