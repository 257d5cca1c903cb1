import { useMutation, useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import type { Passkey } from "../../gen/parley/console/v1/factor_pb.js";
import { factors, factorsQuery, refreshFactors } from "../api/factors.ts";
import { createPasskey } from "../api/passkeys.ts";
import { sessionQuery } from "../api/session.ts";
import { Unavailable } from "../components/alert.tsx";
import { Badge } from "../components/badge.tsx";
import { Button } from "../components/button.tsx";
import { ConfirmDialog } from "../components/confirm-dialog.tsx";
import { TextField } from "../components/field.tsx";
import { Form } from "../components/form.tsx";
import type { PanelProps } from "../components/panel.tsx";
import { RelativeTime } from "../components/relative-time.tsx";

const SetUpTotp = lazy(() => import("./set-up-totp.tsx"));
const RecoveryCodes = lazy(() => import("./recovery-codes.tsx"));

/** Panels of the signed-in account's second factors: undefined while loading, none if the OpenID provider checks them. */
export function useFactorPanels(): readonly PanelProps[] | undefined {
  const list = useQuery(factorsQuery);
  const acceptsPasskeys = useQuery(sessionQuery).data?.acceptsPasskeys === true;
  if (list.isPending) return undefined;
  if (list.isLoadingError)
    return [
      {
        title: "Second factors",
        children: <Unavailable error={list.error} onRetry={() => void list.refetch()} />,
      },
    ];
  const { passkeys, totpTime, recoveryCodes, available } = list.data;
  if (!available) return [];
  const app: PanelProps = {
    title: "Authenticator app",
    description: "A code from an app, asked for after your password.",
    children: <Totp isOn={totpTime !== undefined} codes={recoveryCodes} />,
  };
  if (!acceptsPasskeys && passkeys.length === 0) return [app];
  return [
    {
      title: "Passkeys",
      description: "Sign in, and confirm that it is you, with a device, a security key or a password manager.",
      children: <Passkeys passkeys={passkeys} mayAdd={acceptsPasskeys} />,
    },
    app,
  ];
}

function Passkeys({ passkeys, mayAdd }: { readonly passkeys: readonly Passkey[]; readonly mayAdd: boolean }) {
  const [removed, setRemoved] = useState<Passkey>();
  const [isOpen, setOpen] = useState(false);
  const remove = useMutation({
    mutationFn: (id: string) => factors.removePasskey({ id }),
    async onSuccess() {
      setOpen(false);
      await refreshFactors();
    },
  });
  return (
    <>
      {passkeys.length === 0 ? (
        <p className="text-sm text-muted">No passkeys.</p>
      ) : (
        <ul aria-label="Passkeys" className="divide-y divide-line">
          {passkeys.map((passkey) => (
            <li key={passkey.id} className="flex items-center justify-between gap-4 py-3 text-sm first:pt-0 last:pb-0">
              <div className="min-w-0">
                <bdi className="font-medium wrap-anywhere">{passkey.name}</bdi>
                <p className="mt-0.5 text-muted">
                  {passkey.createTime && (
                    <>
                      Added <RelativeTime time={passkey.createTime} />
                    </>
                  )}
                  {passkey.lastUseTime && (
                    <>
                      , last used <RelativeTime time={passkey.lastUseTime} />
                    </>
                  )}
                </p>
              </div>
              <Button
                look="quiet danger"
                size="small"
                aria-label={`Remove ${passkey.name}`}
                onClick={() => {
                  remove.reset();
                  setRemoved(passkey);
                  setOpen(true);
                }}
              >
                Remove
              </Button>
            </li>
          ))}
        </ul>
      )}
      {mayAdd && <AddPasskey />}
      {removed && (
        <ConfirmDialog
          open={isOpen}
          title="Remove passkey?"
          description={
            <>
              <bdi className="font-medium text-ink">{removed.name}</bdi> can no longer sign you in. Remove it from the
              device too.
            </>
          }
          action="Remove passkey"
          doing="Removing …"
          act={{ ...remove, mutate: () => remove.mutate(removed.id) }}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  );
}

function AddPasskey() {
  // A new form after each passkey.
  const [added, setAdded] = useState(0);
  const add = useMutation({
    async mutationFn(name: string) {
      const { optionsJson } = await factors.beginPasskey({});
      return factors.addPasskey({ name, responseJson: await createPasskey(optionsJson) });
    },
    async onSuccess() {
      setAdded(added + 1);
      await refreshFactors();
    },
  });
  return (
    <Form
      key={added}
      fields={["name"]}
      error={add.error}
      onSubmit={(written) => add.mutate(written.get("name"))}
      className="mt-5 max-w-md space-y-5 border-t border-line pt-5"
    >
      {(errors) => (
        <>
          <TextField
            label="Name of the passkey"
            name="name"
            autoComplete="off"
            hint="Such as Laptop, or Key ring."
            error={errors("name")}
          />
          <Button type="submit" look="secondary" busy={add.isPending}>
            Add passkey
          </Button>
        </>
      )}
    </Form>
  );
}

function Totp({ isOn, codes }: { readonly isOn: boolean; readonly codes: number }) {
  const [opened, setOpened] = useState<"set up" | "renew" | "remove">();
  const [shown, setShown] = useState<readonly string[]>();
  const close = (): void => setOpened(undefined);
  const remove = useMutation({
    mutationFn: () => factors.removeTotp({}),
    async onSuccess() {
      close();
      await refreshFactors();
    },
  });
  const renew = useMutation({
    mutationFn: () => factors.renewRecoveryCodes({}),
    async onSuccess({ recoveryCodes }) {
      close();
      setShown(recoveryCodes);
      await refreshFactors();
    },
  });
  return (
    <>
      {isOn ? (
        <div className="flex flex-wrap items-center gap-3 text-sm">
          <Badge look="good">On</Badge>
          <span className="grow text-muted">
            {codes === 1 ? "1 recovery code left" : `${codes} recovery codes left`}
          </span>
          <Button look="secondary" size="small" onClick={() => (renew.reset(), setOpened("renew"))}>
            New recovery codes
          </Button>
          <Button look="quiet danger" size="small" onClick={() => (remove.reset(), setOpened("remove"))}>
            Turn off
          </Button>
        </div>
      ) : (
        <Button look="secondary" onClick={() => setOpened("set up")}>
          Set up authenticator app
        </Button>
      )}
      <Suspense>
        {opened === "set up" && (
          <SetUpTotp
            onClose={close}
            onDone={(made) => {
              close();
              setShown(made);
            }}
          />
        )}
        {shown && <RecoveryCodes codes={shown} onDone={() => setShown(undefined)} />}
      </Suspense>
      <ConfirmDialog
        open={opened === "renew"}
        title="Make new recovery codes?"
        description="Your current codes stop working."
        action="Make new codes"
        doing="Making …"
        look="primary"
        act={renew}
        onClose={close}
      />
      <ConfirmDialog
        open={opened === "remove"}
        title="Turn off the authenticator app?"
        description="After that your password alone signs you in. The recovery codes are removed."
        action="Turn off"
        doing="Turning off …"
        act={remove}
        onClose={close}
      />
    </>
  );
}
