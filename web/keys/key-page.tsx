import type { ReactNode } from "react";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "wouter";
import { type Key, ProviderOption } from "../../gen/parley/console/v1/key_pb.js";
import { keyQuery } from "../api/keys.ts";
import { useOwnerNames } from "../api/owners.ts";
import { useAccount, useMay, useTeams } from "../api/session.ts";
import { Badge } from "../components/badge.tsx";
import { Button, buttonClass } from "../components/button.tsx";
import { CopyIcon } from "../components/copy-icon.tsx";
import { Fact } from "../components/fact.tsx";
import { Loading, Page } from "../components/page.tsx";
import { Panel } from "../components/panel.tsx";
import { RelativeTime } from "../components/relative-time.tsx";
import type { RowAction } from "../components/row-actions.tsx";
import { TextLink } from "../components/text-link.tsx";
import { keyPath, modelPath, PATHS } from "../paths.ts";
import { RecentRequests } from "../requests/recent.tsx";
import { UsageSection } from "../usage/usage-section.tsx";
import { CAPABILITY_NAMES } from "./capabilities.ts";
import { KeyLimits } from "./key-limits.tsx";
import { useKeyActions } from "./key-actions.tsx";
import { stateOf } from "./key-row.tsx";
import { NoKey } from "./no-key.tsx";

/** Page of one key: state, limits, permissions, usage and requests. */
export default function OneKey() {
  const { id = "" } = useParams();
  const found = useQuery(keyQuery(id));
  const { actionsOn, dialog } = useKeyActions();
  if (found.isPending) return <Loading what="the key" shape="page" />;
  if (found.isLoadingError) return <NoKey title="Key" error={found.error} onRetry={found.refetch} />;
  const key = found.data;
  return (
    <Page
      isWide
      title={key.name}
      description={`API key ${key.display}`}
      actions={
        <div className="flex flex-wrap gap-2">
          {actionsOn(key).map((action) => (
            <Action key={action.verb} action={action} />
          ))}
          <Link href={PATHS.keys} className={buttonClass("secondary", "small")}>
            All keys
          </Link>
        </div>
      }
    >
      <div className="space-y-6">
        <div className="grid items-start gap-4 xl:grid-cols-2">
          <Details value={key} />
          <KeyLimits value={key} />
        </div>
        <Records value={key} />
      </div>
      {dialog}
    </Page>
  );
}

function Action({ action }: { readonly action: RowAction }) {
  const { verb, Icon } = action;
  const content = (
    <>
      <Icon aria-hidden className="size-4" />
      {verb}
    </>
  );
  if ("href" in action)
    return (
      <Link href={action.href} className={buttonClass("secondary", "small")}>
        {content}
      </Link>
    );
  return (
    <Button look="secondary" size="small" onClick={action.onClick}>
      {content}
    </Button>
  );
}

/** What the key is and may do. */
function Details({ value: key }: { readonly value: Key }) {
  const owners = useOwnerNames();
  const { id, accountId, createTime, expireTime, lastUseTime, familyId, replacedBy, tags } = key;
  const [look, word, time] = stateOf(key) ?? (["good", "Active", ""] as const);
  return (
    <Panel title="Key">
      <dl className="grid gap-x-6 gap-y-4 text-sm sm:grid-cols-2">
        <Fact name="Status">
          <span className="flex flex-wrap items-center gap-2">
            <Badge look={look}>{word === "Expires" ? `Active, expires${time}` : `${word}${time}`}</Badge>
            {key.storeContent && <Badge look="warn">Stores prompts and answers</Badge>}
            {key.limitedByAdministrator && <Badge look="plain">Locked by an administrator</Badge>}
          </span>
        </Fact>
        <Fact name="Owner">
          <bdi>{owners.get(accountId) ?? accountId}</bdi>
        </Fact>
        <Fact name="Key ID">
          <span className="flex items-center gap-x-1.5">
            <code className="min-w-0 font-mono wrap-anywhere">{id}</code>
            <CopyIcon text={id} what="the key ID" />
          </span>
        </Fact>
        <Fact name="Last used">{lastUseTime === undefined ? "Never" : <RelativeTime time={lastUseTime} />}</Fact>
        <Fact name="Created">{createTime && <RelativeTime time={createTime} />}</Fact>
        <Fact name="Expires">{expireTime === undefined ? "Never" : <RelativeTime time={expireTime} />}</Fact>
        {replacedBy !== "" && (
          <Fact name="Replaced by">
            <TextLink to={keyPath(replacedBy)}>{replacedBy}</TextLink>
          </Fact>
        )}
        {familyId !== id && (
          <Fact name="Rotated from">
            <TextLink to={keyPath(familyId)}>{familyId}</TextLink>
          </Fact>
        )}
        <Fact name="Models">
          <Models value={key} />
        </Fact>
        <Fact name="Capabilities">
          {CAPABILITY_NAMES.flatMap(([each, name]) => (key.capabilities.includes(each) ? [name] : [])).join(", ")}
        </Fact>
        <Fact name="Provider options">{describeOptions(key)}</Fact>
        <Fact name="Required labels">{describeLabels(key)}</Fact>
        {tags.length > 0 && <Fact name="Tags">{tags.join(", ")}</Fact>}
      </dl>
    </Panel>
  );
}

/** Number of models that are listed; a key may name a thousand. */
const LISTED = 12;

function Models({ value: { models } }: { readonly value: Key }): ReactNode {
  if (models?.all !== false) return "All models, including future ones";
  const { ids } = models;
  return (
    <ul className="space-y-0.5">
      {ids.slice(0, LISTED).map((id) => (
        <li key={id}>
          <TextLink to={modelPath(id)}>
            <bdi>{id}</bdi>
          </TextLink>
        </li>
      ))}
      {ids.length > LISTED && <li className="text-muted">and {ids.length - LISTED} others</li>}
    </ul>
  );
}

const OPTION_NAMES: Readonly<Partial<Record<ProviderOption, string>>> = {
  [ProviderOption.SERVICE_TIER]: "service tier",
  [ProviderOption.WEB_SEARCH]: "web search",
  [ProviderOption.STORE]: "storage at the provider",
  [ProviderOption.PROMPT_CACHE_RETENTION]: "prompt cache retention",
  [ProviderOption.PROVIDER_TOOLS]: "provider tools",
  [ProviderOption.OTHER_FIELDS]: "other fields",
};

function describeOptions({ providerOptions }: Key): string {
  if (providerOptions?.byBudget !== false) return "All without a budget, none with one";
  const names = providerOptions.options.map((option) => OPTION_NAMES[option] ?? String(option));
  return names.length === 0 ? "None" : names.join(", ");
}

function describeLabels({ requiredLabels }: Key): string {
  const { regions = [], retentions = [] } = requiredLabels ?? {};
  const parts = [
    regions.length === 0 ? [] : `region ${regions.join(" or ")}`,
    retentions.length === 0 ? [] : `retention ${retentions.join(" or ")}`,
  ].flat();
  return parts.length === 0 ? "None" : parts.join(", ");
}

/** Usage and requests of the key, as far as the account may see them. */
function Records({ value: { id, accountId } }: { readonly value: Key }) {
  const own = useAccount().id;
  const isOwn = [own, ...useTeams().map((team) => team.accountId)].includes(accountId);
  const maySeeUsage = useMay("usage.read") || isOwn;
  const maySeeRequests = useMay("requests.read") || isOwn;
  return (
    <>
      {maySeeUsage && <UsageSection of={{ key: id }} by="model" />}
      {maySeeRequests && <RecentRequests filter={{ keyId: id }} columns={COLUMNS} query={{ key: id }} />}
    </>
  );
}

const COLUMNS = ["time", "model", "status", "tokens", "cost", "duration", "ttft"] as const;
