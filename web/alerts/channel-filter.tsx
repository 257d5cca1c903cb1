import { AlertRule, AlertSeverity } from "../../gen/parley/console/v1/alert_pb.js";
import { CheckField, FieldGroup, SelectField } from "../components/field.tsx";
import type { Written } from "../components/form.tsx";
import { RULE_NAMES } from "./rule-names.ts";

/** Which alerts a channel gets. */
interface ChannelFilter {
  /** Empty for all rules. */
  readonly rules: readonly AlertRule[];
  readonly leastSeverity: AlertSeverity;
}

interface ChannelFilterFieldsProps {
  readonly chosen?: ChannelFilter;
  readonly errors: (field: string) => string | undefined;
}

/** Fields that choose which alerts a channel gets: by default all. */
export function ChannelFilterFields({ chosen, errors }: ChannelFilterFieldsProps) {
  const rules = chosen?.rules ?? [];
  return (
    <>
      <FieldGroup label="Alerts" error={errors("rules")}>
        <div className="grid gap-x-4 sm:grid-cols-2">
          {RULE_NAMES.map(([rule, name]) => (
            <CheckField
              key={rule}
              label={name}
              name="rules"
              value={rule}
              defaultChecked={rules.length === 0 || rules.includes(rule)}
            />
          ))}
        </div>
      </FieldGroup>
      <SelectField
        label="Severity"
        name="least_severity"
        defaultValue={chosen?.leastSeverity ?? AlertSeverity.WARNING}
        error={errors("least_severity")}
      >
        <option value={AlertSeverity.WARNING}>Warning and critical</option>
        <option value={AlertSeverity.CRITICAL}>Critical only</option>
      </SelectField>
    </>
  );
}

/** Reads the fields. The selection of all rules is sent as an empty list, which includes rules of later versions. */
export function readChannelFilter(form: Written): { rules: AlertRule[]; leastSeverity: AlertSeverity } {
  const rules = form.all("rules").map((value): AlertRule => Number(value));
  const leastSeverity: AlertSeverity = Number(form.get("least_severity"));
  if (rules.length === RULE_NAMES.length) return { rules: [], leastSeverity };
  // No rule is selected: UNSPECIFIED makes the service refuse the request with a field error.
  return { rules: rules.length === 0 ? [AlertRule.UNSPECIFIED] : rules, leastSeverity };
}
