// Program behind `npm run pulsar:down`: ends the broker of this clone and removes its data. Also after a crash.
import { UP_FOLDER } from './broker-up.js';
import { removeLeftBehind } from './broker-folder.js';

const pid = UP_FOLDER.runningPid;
UP_FOLDER.removeWithBroker();
removeLeftBehind();
console.log(pid === undefined ? 'no broker was up' : `ended the broker (process ${pid}) and removed its data`);
