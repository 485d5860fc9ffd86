// `npm run check`: everything that must hold before a change is merged.
import process from 'node:process';

process.env.PULSEWORK_CHECK = '1';
await import('./run-tests.mjs');
