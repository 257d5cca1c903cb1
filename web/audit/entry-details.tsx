import type { AuditEntry } from "../../gen/parley/console/v1/audit_pb.js";
import { Button } from "../components/button.tsx";
import { Dialog, DialogActions } from "../components/dialog.tsx";
import { Fact } from "../components/fact.tsx";
import { None } from "../components/table.tsx";
import { formatPreciseMoment } from "../format/time.ts";
import type { Conditions } from "./filter.ts";
import { ACTION_WORDS, changesOf, describeActor, describeObject, detailsOf, type Names } from "./words.ts";

interface EntryDetailsProps {
  readonly entry: AuditEntry;
  readonly names: Names;
  readonly open: boolean;
  readonly onClose: () => void;
  readonly onFilter: (conditions: Partial<Conditions>) => void;
}

/** Dialog with all facts of an entry, and its changed fields. */
export function EntryDetails({ entry, names, open, onClose, onFilter }: EntryDetailsProps) {
  const { action, actor, object, accountId, network, client, time, sequence, hash, failed } = entry;
  const changes = changesOf(entry, names);
  return (
    <Dialog open={open} onClose={onClose} wide title={ACTION_WORDS[action] ?? action}>
      <div className="space-y-5">
        <dl className="grid gap-4 text-sm sm:grid-cols-2">
          {time && <Fact name="Time">{formatPreciseMoment(time)}</Fact>}
          <Fact name="Actor">
            <Named name={describeActor(actor, names)} id={actor?.kind === "account" ? actor.id : ""} />
          </Fact>
          {object && (
            <Fact name="Object">
              <Named
                name={describeObject(object, names)}
                id={object.kind === "account" || object.kind === "key" ? object.id : ""}
              />
            </Fact>
          )}
          {accountId !== "" && accountId !== object?.id && (
            <Fact name="Account concerned">
              <Named name={names.accounts.get(accountId) ?? accountId} id={accountId} />
            </Fact>
          )}
          {network !== "" && <Fact name="Network">{network}</Fact>}
          {client !== "" && (
            <Fact name="Client">
              <bdi>{client}</bdi>
            </Fact>
          )}
          {failed && <Fact name="Result">Failed</Fact>}
          {detailsOf(entry, names).map(([name, value]) => (
            <Fact key={name} name={name}>
              <bdi>{value}</bdi>
            </Fact>
          ))}
        </dl>
        {changes.length > 0 && <Changes changes={changes} />}
        <dl className="text-sm">
          <Fact name={`Entry ${sequence.toString()}, SHA-256`}>
            <code className="text-xs break-all text-muted">{hash}</code>
          </Fact>
        </dl>
        <DialogActions close="Close">
          {object && (
            <Button look="secondary" onClick={() => onFilter({ object: object.id })}>
              All entries about this
            </Button>
          )}
        </DialogActions>
      </div>
    </Dialog>
  );
}

/** A name with its ID, unless the name is the ID. */
function Named({ name, id }: { readonly name: string; readonly id: string }) {
  return (
    <>
      <bdi>{name}</bdi> {!name.endsWith(id) && <code className="text-xs text-muted">{id}</code>}
    </>
  );
}

function Changes({ changes }: { readonly changes: ReturnType<typeof changesOf> }) {
  return (
    // The keyboard scrolls a wide table.
    <div
      role="region"
      aria-label="Changed fields"
      tabIndex={0}
      className="overflow-x-auto rounded-lg border border-line"
    >
      <table className="w-full text-left text-sm">
        <thead className="border-b border-line text-muted">
          <tr>
            {["Field", "Before", "After"].map((column) => (
              <th key={column} scope="col" className="px-3 py-2 font-medium">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {changes.map(({ field, before, after }) => (
            <tr key={field} className="align-top">
              <th scope="row" className="px-3 py-2 font-normal">
                <code className="text-xs">{field}</code>
              </th>
              <td className="min-w-24 px-3 py-2 wrap-anywhere">{before === "" ? <None /> : <bdi>{before}</bdi>}</td>
              <td className="min-w-24 px-3 py-2 wrap-anywhere">{after === "" ? <None /> : <bdi>{after}</bdi>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
