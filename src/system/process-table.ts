// The processes of this machine, as the operating system tells of them.
import type { ProcessTable } from '../ports/process-table.js';
import { systemEnvironment } from './environment.js';

export const systemProcessTable: ProcessTable = {
  host: systemEnvironment.host,
  processId: systemEnvironment.processId,
  isAlive(processId) {
    try {
      // Signal 0 is not delivered: it only asks.
      process.kill(processId, 0);
      return true;
    } catch (error) {
      // It lives and belongs to somebody else.
      return (error as NodeJS.ErrnoException).code === 'EPERM';
    }
  },
};
