import { useQuery } from "@tanstack/react-query";
import { alertCountQuery } from "../api/alerts.ts";

const MOST = 99;

/** Number of open alerts that are not acknowledged, in the navigation; nothing without any. */
export function AlertBadge() {
  const { data: active = 0 } = useQuery(alertCountQuery);
  if (active === 0) return null;
  return (
    <span className="ml-auto rounded-full bg-danger-soft px-2 py-0.5 text-xs text-danger">
      {active > MOST ? `${MOST}+` : active}
      <span className="sr-only"> open</span>
    </span>
  );
}
