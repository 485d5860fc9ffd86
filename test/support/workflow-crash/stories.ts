// The stories by name.
import { approvalStory } from './approval-story.js';
import { fanOutStory } from './fan-out-story.js';
import { orderStory } from './order-story.js';
import type { Story, StoryName } from './story.js';

export const STORIES: Readonly<Record<StoryName, Story>> = {
  order: orderStory,
  approval: approvalStory,
  'fan-out': fanOutStory,
};
