// The integration tests alone: `npx vitest run --config test/integration/vitest.config.ts [NAME]`.
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import rootConfig from '../../vitest.config.js';
import { integrationProjects } from './projects.js';

export default defineConfig({
  ...rootConfig,
  root: fileURLToPath(new URL('../..', import.meta.url)),
  test: { ...rootConfig.test, include: [], projects: integrationProjects },
});
