import type { Finding } from "./alert.ts";
import type { AlertStore, Receiver } from "./alert-store.ts";

/**
 * Finds who is told about findings: all channels, and where e-mail can be sent every administrator, and the owner of what it is about.
 */
export async function findReceivers(
  store: Pick<AlertStore, "channels" | "addresses">,
  findings: readonly Finding[],
  hasMail: boolean,
): Promise<(finding: Finding) => readonly Receiver[]> {
  const channels = (await store.channels())
    .filter(({ kind }) => kind !== "email" || hasMail)
    .map(({ id, name }) => ({ channelId: id, recipient: name }));
  if (!hasMail) return () => channels;
  const { administrators, owners } = await store.addresses(findings.flatMap(({ accountId }) => accountId ?? []));
  return ({ accountId }) => {
    const owner = accountId === undefined ? undefined : owners.get(accountId);
    const people = new Set([...administrators, ...(owner === undefined ? [] : [owner])]);
    return [...channels, ...[...people].map((recipient) => ({ channelId: undefined, recipient }))];
  };
}
