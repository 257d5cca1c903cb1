import { AlertRule } from "../../gen/parley/console/v1/alert_pb.js";

/** Names of the rules, in their order. */
export const RULE_NAMES: readonly (readonly [AlertRule, string])[] = [
  [AlertRule.BUDGET, "Budget"],
  [AlertRule.BUDGET_FORECAST, "Budget forecast"],
  [AlertRule.END_USER_BUDGET, "Budgets of end users"],
  [AlertRule.ERROR_RATE, "Error rate"],
  [AlertRule.LATENCY, "Latency"],
  [AlertRule.PROVIDER_DOWN, "Provider down"],
  [AlertRule.KEY_EXPIRING, "Key expiring"],
  [AlertRule.UNUSUAL_SPEND, "Unusual spending"],
  [AlertRule.MORE_ALERTS, "More alerts"],
];
