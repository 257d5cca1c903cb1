import { Badge } from "./badge.tsx";
import { outcomeOf } from "../format/outcomes.ts";

interface OutcomeBadgeProps {
  readonly code: string;
  /** The request was refused before any upstream call. */
  readonly refused?: boolean;
}

/** The status of a request or an attempt. */
export function OutcomeBadge({ code, refused = false }: OutcomeBadgeProps) {
  const { label, look } = outcomeOf(code);
  return <Badge look={look}>{refused ? `Refused: ${label.charAt(0).toLowerCase()}${label.slice(1)}` : label}</Badge>;
}
