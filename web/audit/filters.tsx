import type { Account } from "../../gen/parley/console/v1/account_pb.js";
import { type Choice, Choose } from "../components/choose.tsx";
import { chipOf, FilterChips } from "../components/filter-chips.tsx";
import { type Conditions, NO_CONDITIONS, RANGES } from "./filter.ts";
import { ACTION_WORDS, ACTOR_WORDS, type Names } from "./words.ts";

const RESULTS: readonly Choice[] = [["failed", "Failed"]];
const TIMES: readonly Choice[] = Object.entries(RANGES).map(([range, [name]]) => [range, name]);

interface FiltersProps {
  readonly conditions: Conditions;
  readonly accounts: readonly Account[];
  readonly names: Names;
  readonly onChange: (changes: Partial<Conditions>) => void;
}

/** Filter fields of the audit log. */
export function Filters({ conditions, accounts, names, onChange }: FiltersProps) {
  const { action, actor, account, object, result, range } = conditions;
  const actions = Object.entries(ACTION_WORDS);
  const people = accounts.map(({ id, name, email }) => [id, email === "" ? name : `${name}, ${email}`] as const);
  const actors = [...Object.entries(ACTOR_WORDS), ...people];
  const objects = [names.accounts, names.keys, names.adminKeys, names.roles].flatMap((known) => [...known]);
  return (
    <div className="mb-4 flex flex-col gap-3">
      <div className="grid grid-cols-2 gap-3 lg:grid-cols-5">
        <Choose
          label="Action"
          value={action}
          all="All actions"
          choices={actions}
          onChange={(value) => onChange({ action: value })}
        />
        <Choose
          label="Actor"
          value={actor}
          all="All actors"
          choices={actors}
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
          choices={RESULTS}
          onChange={(value) => onChange({ result: value })}
        />
        <Choose
          label="Time"
          value={range}
          all="All 400 days"
          choices={TIMES}
          onChange={(value) => onChange({ range: value })}
        />
      </div>
      <FilterChips
        chips={[
          ...chipOf("Action", action, { choices: actions, onRemove: () => onChange({ action: "" }) }),
          ...chipOf("Actor", actor, { choices: actors, onRemove: () => onChange({ actor: "" }) }),
          ...chipOf("Account concerned", account, { choices: people, onRemove: () => onChange({ account: "" }) }),
          ...chipOf("Object", object, { choices: objects, onRemove: () => onChange({ object: "" }) }),
          ...chipOf("Result", result, { choices: RESULTS, onRemove: () => onChange({ result: "" }) }),
          ...chipOf("Time", range, { choices: TIMES, onRemove: () => onChange({ range: "" }) }),
        ]}
        onClear={() => onChange(NO_CONDITIONS)}
      />
    </div>
  );
}
