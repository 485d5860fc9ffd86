// All campaigns, in the order in which `--help` lists them.
import { brokerScaleCampaign } from './broker-scale-campaign.js';
import type { Campaign } from './campaign.js';
import { conformanceCampaign } from './conformance-campaign.js';
import { crashCampaign } from './crash-campaign.js';
import { exactlyOnceCampaign } from './exactly-once-campaign.js';
import { durableKillsCampaign } from './durable-kills-campaign.js';
import { faultsCampaign } from './faults-campaign.js';
import { differentialCampaign } from './differential-campaign.js';
import { killCampaign } from './kill-campaign.js';
import { nackScheduleCampaign } from './nack-schedule-campaign.js';
import { orderingModelCampaign } from './ordering-model-campaign.js';
import { otelLinesCampaign } from './otel-lines-campaign.js';
import { orderingKillsCampaign } from './ordering-kills-campaign.js';
import { outboxKillsCampaign } from './outbox-kills-campaign.js';
import { outageCampaign } from './outage-campaign.js';
import { redeliveryDelayCampaign } from './redelivery-delay-campaign.js';
import { soakCampaign } from './soak-campaign.js';
import { transactionKillsCampaign } from './transaction-kills-campaign.js';
import { transactionsCampaign } from './transactions-campaign.js';
import { wireCutsCampaign } from './wire-cuts-campaign.js';
import { workflowCrashesCampaign } from './workflow-crashes-campaign.js';
import { workflowKillsCampaign } from './workflow-kills-campaign.js';

export const CAMPAIGNS: readonly Campaign[] = [
  conformanceCampaign,
  crashCampaign,
  faultsCampaign,
  killCampaign,
  durableKillsCampaign,
  orderingKillsCampaign,
  outboxKillsCampaign,
  exactlyOnceCampaign,
  wireCutsCampaign,
  differentialCampaign,
  orderingModelCampaign,
  transactionsCampaign,
  transactionKillsCampaign,
  workflowCrashesCampaign,
  workflowKillsCampaign,
  nackScheduleCampaign,
  otelLinesCampaign,
  outageCampaign,
  redeliveryDelayCampaign,
  brokerScaleCampaign,
  soakCampaign,
];
