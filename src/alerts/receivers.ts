import { type Finding, isWanted } from "./alert.ts";
import type { AlertStore, Receiver } from "./alert-store.ts";

/**
 * Finds the receivers of messages about findings: the channels that want them and, where e-mail can be sent, every
 * administrator and the owner of the finding's account.
 */
export async function findReceivers(
  store: Pick<AlertStore, "channels" | "addresses">,
  findings: readonly Finding[],
  hasMail: boolean,
): Promise<(finding: Finding) => readonly Receiver[]> {
  const channels = (await store.channels()).filter(({ kind }) => kind !== "email" || hasMail);
  const channelsFor = (finding: Finding): Receiver[] =>
    channels
      .filter((channel) => isWanted(channel, finding))
      .map(({ id, name }) => ({ channelId: id, recipient: name }));
  if (!hasMail) return channelsFor;
  const { administrators, owners } = await store.addresses(findings.flatMap(({ accountId }) => accountId ?? []));
  return (finding) => {
    const { accountId } = finding;
    const owner = accountId === undefined ? undefined : owners.get(accountId);
    const people = new Set([...administrators, ...(owner === undefined ? [] : [owner])]);
    return [...channelsFor(finding), ...[...people].map((recipient) => ({ channelId: undefined, recipient }))];
  };
}
