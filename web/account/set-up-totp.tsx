import { useMutation, useQuery } from "@tanstack/react-query";
import { encodeQR } from "qr";
import { factors, refreshFactors } from "../api/factors.ts";
import { Unavailable } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { CopyButton } from "../components/copy-button.tsx";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { TextField } from "../components/field.tsx";
import { Form } from "../components/form.tsx";
import { Loading } from "../components/page.tsx";

interface SetUpTotpProps {
  readonly onClose: () => void;
  readonly onDone: (recoveryCodes: readonly string[]) => void;
}

/** Dialog that shows the secret of an authenticator app, and turns it on by the app's code. */
export default function SetUpTotp({ onClose, onDone }: SetUpTotpProps) {
  const begun = useQuery({
    queryKey: ["totp enrolment"],
    queryFn: () => factors.beginTotp({}),
    // One secret for each opening of the dialog.
    gcTime: 0,
    staleTime: Infinity,
    retry: false,
  });
  const confirm = useMutation({
    mutationFn: (code: string) => factors.confirmTotp({ enrolment: begun.data?.enrolment ?? "", code }),
    async onSuccess({ recoveryCodes }) {
      onDone(recoveryCodes);
      await refreshFactors();
    },
  });
  return (
    <Dialog
      open
      title="Set up authenticator app"
      description="Scan the code with your app, or type in the secret. Then enter what the app shows."
      onClose={onClose}
    >
      {begun.isPending ? (
        <Loading what="the secret" shape="lines" />
      ) : begun.isError ? (
        <Unavailable error={begun.error} onRetry={() => void begun.refetch()} />
      ) : (
        <Form fields={["code"]} error={confirm.error} onSubmit={(written) => confirm.mutate(written.get("code"))}>
          {(errors) => (
            <>
              <QrCode text={begun.data.uri} />
              <div className="flex flex-wrap items-center gap-3 rounded-lg border border-line bg-sunken p-3">
                <code
                  data-testid="totp-secret"
                  className="min-w-0 flex-1 basis-60 font-mono text-sm break-all select-all"
                >
                  {begun.data.secret}
                </code>
                <CopyButton text={begun.data.secret} what="the secret" />
              </div>
              <TextField
                label="Code"
                name="code"
                autoComplete="one-time-code"
                inputMode="numeric"
                error={errors("code")}
              />
              <DialogActions>
                <Button type="submit" busy={confirm.isPending}>
                  Turn on
                </Button>
              </DialogActions>
            </>
          )}
        </Form>
      )}
    </Dialog>
  );
}

/** A QR code of a text. */
function QrCode({ text }: { readonly text: string }) {
  const rows = encodeQR(text, "raw", { border: 2 });
  const path = rows.flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : ""))).join("");
  return (
    <svg
      viewBox={`0 0 ${rows.length} ${rows.length}`}
      shapeRendering="crispEdges"
      role="img"
      aria-label="QR code of the secret"
      className="mx-auto size-48 rounded-lg bg-qr-paper"
    >
      <path d={path} className="fill-qr" />
    </svg>
  );
}
