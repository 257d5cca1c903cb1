import type { HealthNote } from "../core/health-notes.ts";

/**
 * Upstream models that this process should pass over although its own breaker is closed: more other processes have an open circuit
 * breaker for the model than processes, this one included, were lately served by it. A process that no model served lately has no
 * vote, because its own network may be broken.
 */
export function downElsewhere(others: readonly HealthNote[], own: HealthNote): ReadonlySet<string> {
  const votes = new Map<string, number>();
  for (const { down, up } of others)
    if (up.length > 0) for (const name of new Set(down)) votes.set(name, (votes.get(name) ?? 0) + 1);
  for (const { up } of [own, ...others])
    for (const name of new Set(up)) if (votes.has(name)) votes.set(name, votes.get(name)! - 1);
  return new Set([...votes].flatMap(([name, balance]) => (balance > 0 ? [name] : [])));
}
