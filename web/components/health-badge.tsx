import { formatTime, formatMoment } from "../format/time.ts";
import { type Health, healthOf, type Observed } from "../format/health.ts";
import { Badge } from "./badge.tsx";

const BADGES: Readonly<Record<Health, readonly [look: "good" | "warn" | "danger" | "plain", label: string]>> = {
  healthy: ["good", "Healthy"],
  degraded: ["warn", "Degraded"],
  failing: ["danger", "Failing"],
  "circuit open": ["danger", "Circuit open"],
  "ready to retry": ["warn", "Ready to retry"],
  recovering: ["warn", "Recovering"],
  unknown: ["plain", "Unknown"],
};

interface HealthBadgeProps {
  readonly of: Observed;
  /** Without the time when the circuit opened. */
  readonly isShort?: boolean;
}

/** Health of a model, with the time when its circuit opened. */
export function HealthBadge({ of, isShort = false }: HealthBadgeProps) {
  const health = healthOf(of);
  const [look, label] = BADGES[health];
  const start = of.breaker?.restStartTime;
  if (start === undefined || isShort) return <Badge look={look}>{label}</Badge>;
  const since = `since ${formatTime(start)}`;
  return (
    <span title={formatMoment(start)}>
      <Badge look={look}>{health === "circuit open" ? `${label} ${since}` : `${label} (circuit open ${since})`}</Badge>
    </span>
  );
}
