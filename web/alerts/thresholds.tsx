import { useMutation, useQuery } from "@tanstack/react-query";
import type { GetThresholdsResponse } from "../../gen/parley/console/v1/alert_pb.js";
import { alerts, refreshAlerts, thresholdsQuery } from "../api/alerts.ts";
import { Unavailable } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { TextField } from "../components/field.tsx";
import { Form, type Written } from "../components/form.tsx";
import { Loading } from "../components/page.tsx";
import { Panel } from "../components/panel.tsx";

type Thresholds = NonNullable<GetThresholdsResponse["thresholds"]>;
type Name = Exclude<keyof Thresholds, "$typeName" | "$unknown">;

/** Fields in their order: the name in the API and the configuration, label, and hint. */
const FIELDS: readonly (readonly [name: Name, field: string, label: string, hint: string])[] = [
  ["budgetPercent", "budget_percent", "Budget used (percent)", "Separated by commas. Empty turns budget alerts off."],
  ["keyExpiryDays", "key_expiry_days", "Days before a key expires", "0 turns it off."],
  ["errorPercent", "error_percent", "Failed requests in ten minutes (percent)", "Of a model or a key. 0 turns it off."],
  ["minRequests", "min_requests", "Minimum requests in ten minutes", "For error rate and latency."],
  [
    "latencyFactor",
    "latency_factor",
    "Latency, times the usual",
    "95th percentile, against the last 7 days. 0 turns it off.",
  ],
  ["spendFactor", "spend_factor", "Spending, times the usual", "In an hour, against the last 14 days. 0 turns it off."],
  ["spendMinimumUsd", "spend_minimum_usd", "Minimum spending in an hour (USD)", "No alert below this amount."],
];

/** Panel of the thresholds, for administrators. */
export function Thresholds() {
  const found = useQuery(thresholdsQuery);
  return (
    <Panel title="Thresholds" description="For all accounts. Changes apply within a minute.">
      {found.isPending ? (
        <Loading what="the thresholds" shape="lines" />
      ) : found.isLoadingError ? (
        <Unavailable error={found.error} onRetry={() => void found.refetch()} />
      ) : (
        <ThresholdForm known={found.data} />
      )}
    </Panel>
  );
}

function ThresholdForm({ known: { thresholds, ofFile } }: { readonly known: GetThresholdsResponse }) {
  const set = useMutation({
    mutationFn: (form: Written) => alerts.setThresholds({ thresholds: readThresholds(form, thresholds, ofFile) }),
    onSuccess: refreshAlerts,
  });
  return (
    <Form
      fields={FIELDS.map(([, field]) => `thresholds.${field}`)}
      error={set.error}
      onSubmit={(form) => set.mutate(form)}
    >
      {(errors) => (
        <>
          <div className="grid gap-5 sm:grid-cols-2">
            {FIELDS.map(([name, field, label, hint]) => (
              <TextField
                key={field}
                label={label}
                name={field}
                inputMode={name === "budgetPercent" ? "text" : "decimal"}
                autoComplete="off"
                defaultValue={String(thresholds?.[name] ?? "").replaceAll(",", ", ")}
                disabled={ofFile.includes(field)}
                hint={ofFile.includes(field) ? `Set in the configuration file (alerts.${field}).` : hint}
                error={errors(`thresholds.${field}`)}
              />
            ))}
          </div>
          <div className="flex flex-wrap items-center gap-4">
            <Button type="submit" look="secondary" busy={set.isPending}>
              Save thresholds
            </Button>
            <p role="status" className="text-sm text-good">
              {set.isSuccess ? "Saved." : ""}
            </p>
          </div>
        </>
      )}
    </Form>
  );
}

/** Reads the form. Text that is not a number is sent as NaN or 0, which the service refuses. */
function readThresholds(form: Written, before: Thresholds | undefined, ofFile: readonly string[]) {
  const numberOf = (text: string): number => (text.trim() === "" ? Number.NaN : Number(text));
  const entries = FIELDS.map(([name, field]) => {
    if (ofFile.includes(field)) return [name, before?.[name]];
    const text = form.get(field);
    if (name === "minRequests") return [name, Math.trunc(numberOf(text)) || 0];
    if (name !== "budgetPercent") return [name, numberOf(text)];
    return [
      name,
      text
        .split(",")
        .filter((part) => part.trim() !== "")
        .map((part) => Math.trunc(numberOf(part)) || 0),
    ];
  });
  return Object.fromEntries(entries) as Omit<Thresholds, "$typeName">;
}
