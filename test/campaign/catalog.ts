// All campaigns, in the order in which `--help` lists them.
import type { Campaign } from './campaign.js';
import { crashCampaign } from './crash-campaign.js';
import { killCampaign } from './kill-campaign.js';
import { nackScheduleCampaign } from './nack-schedule-campaign.js';
import { otelLinesCampaign } from './otel-lines-campaign.js';
import { outageCampaign } from './outage-campaign.js';
import { redeliveryDelayCampaign } from './redelivery-delay-campaign.js';
import { soakCampaign } from './soak-campaign.js';
import { wireCutsCampaign } from './wire-cuts-campaign.js';

export const CAMPAIGNS: readonly Campaign[] = [
  crashCampaign,
  killCampaign,
  wireCutsCampaign,
  nackScheduleCampaign,
  otelLinesCampaign,
  outageCampaign,
  redeliveryDelayCampaign,
  soakCampaign,
];
