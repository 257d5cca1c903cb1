import type { Account } from "../../gen/parley/console/v1/account_pb.js";
import { Button } from "../components/button.tsx";
import { Choose } from "../components/choose.tsx";
import { type Conditions, NO_CONDITIONS, RANGES } from "./filter.ts";
import { ACTION_WORDS, ACTOR_WORDS } from "./words.ts";

interface FiltersProps {
  readonly conditions: Conditions;
  readonly accounts: readonly Account[];
  readonly onChange: (changes: Partial<Conditions>) => void;
}

/** Filter fields of the audit log. */
export function Filters({ conditions, accounts, onChange }: FiltersProps) {
  const { action, actor, account, object, result, range } = conditions;
  const people = accounts.map(({ id, name, email }) => [id, email === "" ? name : `${name}, ${email}`] as const);
  return (
    <div className="mb-4 space-y-3">
      <div className="grid grid-cols-2 gap-3 lg:grid-cols-5">
        <Choose
          label="Action"
          value={action}
          all="All actions"
          choices={Object.entries(ACTION_WORDS)}
          onChange={(value) => onChange({ action: value })}
        />
        <Choose
          label="Actor"
          value={actor}
          all="All actors"
          choices={[...Object.entries(ACTOR_WORDS), ...people]}
          onChange={(value) => onChange({ actor: value })}
        />
        <Choose
          label="Account concerned"
          value={account}
          all="All accounts"
          choices={people}
          onChange={(value) => onChange({ account: value })}
        />
        <Choose
          label="Result"
          value={result}
          all="All results"
          choices={[["failed", "Failed"]]}
          onChange={(value) => onChange({ result: value })}
        />
        <Choose
          label="Time"
          value={range}
          all="All 400 days"
          choices={Object.entries(RANGES).map(([each, [name]]) => [each, name])}
          onChange={(value) => onChange({ range: value })}
        />
      </div>
      {Object.values(conditions).some((value) => value !== "") && (
        <div className="flex flex-wrap items-center gap-x-3 gap-y-1 text-sm wrap-anywhere text-muted">
          {object !== "" && <span>Only about {object}.</span>}
          <Button look="quiet" size="small" className="-ml-3" onClick={() => onChange(NO_CONDITIONS)}>
            Clear filters
          </Button>
        </div>
      )}
    </div>
  );
}
