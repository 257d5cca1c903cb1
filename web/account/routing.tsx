import { useMutation, useQuery } from "@tanstack/react-query";
import { useRef, useState } from "react";
import type { AccountAlias, OwnCredential } from "../../gen/parley/console/v1/routing_pb.js";
import { readFailure } from "../api/failure.ts";
import { refreshRouting, routing, routingQuery } from "../api/routing.ts";
import { mayWrite, useAccount } from "../api/session.ts";
import { Alert, Unavailable } from "../components/alert.tsx";
import { Badge } from "../components/badge.tsx";
import { Button } from "../components/button.tsx";
import { ConfirmDialog } from "../components/confirm-dialog.tsx";
import { SelectField, TextAreaField, TextField } from "../components/field.tsx";
import { Form, type Written } from "../components/form.tsx";
import type { PanelProps } from "../components/panel.tsx";
import { notify } from "../components/notify.ts";
import { RelativeTime } from "../components/relative-time.tsx";

/**
 * Panels of the account's own credentials, where the operator allows any, and of its aliases: undefined while loading, none
 * for an account that cannot change them.
 */
export function useRoutingPanels(): readonly PanelProps[] | undefined {
  const isWritable = mayWrite(useAccount());
  const found = useQuery({ ...routingQuery, enabled: isWritable });
  if (!isWritable) return [];
  if (found.isPending) return undefined;
  if (found.isLoadingError)
    return [
      {
        title: "Provider credentials",
        children: <Unavailable error={found.error} onRetry={() => void found.refetch()} />,
      },
    ];
  const { credentials, providers, aliases } = found.data;
  const others: PanelProps = {
    title: "Aliases",
    description: "Other names of models, for the keys of this account.",
    children: <AliasForm aliases={aliases} />,
  };
  if (providers.length === 0 && credentials.length === 0) return [others];
  return [
    {
      title: "Provider credentials",
      description:
        "Used in place of the operator's for all keys of this account, and billed to you by the provider. Never shown again.",
      children: (
        <>
          <Credentials credentials={credentials} />
          {providers.length > 0 && <CredentialForm providers={providers} />}
        </>
      ),
    },
    others,
  ];
}

function Credentials({ credentials }: { readonly credentials: readonly OwnCredential[] }) {
  if (credentials.length === 0) return null;
  return (
    <ul aria-label="Provider credentials" className="mb-6 divide-y divide-line border-b border-line">
      {credentials.map((credential) => (
        <Credential key={credential.provider} credential={credential} />
      ))}
    </ul>
  );
}

function Credential({ credential: { provider, setTime, setBy, inUse } }: { readonly credential: OwnCredential }) {
  const account = useAccount();
  const [isRemoving, setRemoving] = useState(false);
  const remove = useMutation({
    mutationFn: () => routing.removeCredential({ provider }),
    async onSuccess() {
      setRemoving(false);
      notify(`Credential for ${provider} removed.`);
      await refreshRouting();
    },
  });
  const by = setBy === account.id ? "by you" : setBy === "" ? "on the command line" : "by an administrator";
  return (
    <li className="flex flex-wrap items-center justify-between gap-x-4 gap-y-2 py-3 text-sm first:pt-0">
      <div>
        <p className="flex flex-wrap items-center gap-x-3">
          <span className="font-medium">{provider}</span>
          {!inUse && <Badge look="warn">Not in use: the operator no longer allows it</Badge>}
        </p>
        {setTime && (
          <p className="mt-0.5 text-muted">
            Set <RelativeTime time={setTime} /> {by}
          </p>
        )}
      </div>
      <Button look="secondary" aria-label={`Remove the credential for ${provider}`} onClick={() => setRemoving(true)}>
        Remove
      </Button>
      <ConfirmDialog
        open={isRemoving}
        title={`Remove the credential for ${provider}?`}
        description="New requests use the operator's credential again. Revoke it at the provider too, if nothing else uses it."
        action="Remove credential"
        doing="Removing …"
        act={remove}
        onClose={() => setRemoving(false)}
      />
    </li>
  );
}

function CredentialForm({ providers }: { readonly providers: readonly string[] }) {
  const fields = useRef<HTMLDivElement>(null);
  const set = useMutation({
    mutationFn: (written: Written) =>
      routing.setCredential({ provider: written.get("provider"), secret: written.get("secret") }),
    async onSuccess() {
      for (const input of fields.current?.querySelectorAll("input") ?? []) input.value = "";
      notify("Credential saved. Requests use it within five seconds.");
      await refreshRouting();
    },
  });
  return (
    <Form
      fields={["provider", "secret"]}
      error={set.error}
      onSubmit={(written) => set.mutate(written)}
      className="max-w-md"
    >
      {(errors) => (
        <div ref={fields} className="space-y-5">
          <SelectField label="Provider" name="provider" error={errors("provider")}>
            {providers.map((provider) => (
              <option key={provider}>{provider}</option>
            ))}
          </SelectField>
          <TextField
            label="API key at the provider"
            name="secret"
            type="password"
            autoComplete="off"
            hint="Replaces the current one."
            error={errors("secret")}
          />
          <Button type="submit" look="secondary" busy={set.isPending}>
            Save credential
          </Button>
        </div>
      )}
    </Form>
  );
}

function AliasForm({ aliases }: { readonly aliases: readonly AccountAlias[] }) {
  const set = useMutation({
    mutationFn: (text: string) => routing.setAliases({ aliases: readAliases(text) }),
    onSuccess() {
      notify("Aliases saved.");
      return refreshRouting();
    },
  });
  const failing = set.isError ? readFailure(set.error) : undefined;
  const text = aliases.map(({ name, model }) => `${name} = ${model}`).join("\n");
  return (
    <Form fields={[]} error={null} onSubmit={(written) => set.mutate(written.get("aliases"))} className="space-y-5">
      {() => (
        <>
          {failing && <Alert>{failing.message}</Alert>}
          <TextAreaField
            label="One on each line: NAME = MODEL"
            name="aliases"
            rows={4}
            defaultValue={text}
            spellCheck={false}
            hint="A name may end with *, such as claude-* = alpha-sonnet-4.5. The first match applies."
            className="font-mono text-sm"
          />
          <Button type="submit" look="secondary" busy={set.isPending}>
            Save aliases
          </Button>
        </>
      )}
    </Form>
  );
}

/** Reads one alias per line. A line without `=` becomes an alias without a model, which the service refuses. */
function readAliases(text: string): { name: string; model: string }[] {
  const lines = text.split("\n").map((line) => line.trim());
  return lines
    .filter((line) => line !== "")
    .map((line) => {
      const at = line.indexOf("=");
      const [name, model] = at === -1 ? [line, ""] : [line.slice(0, at), line.slice(at + 1)];
      return { name: name.trim(), model: model.trim() };
    });
}
