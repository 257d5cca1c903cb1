import type { ChangeConfigurationResponse } from "../../gen/parley/console/v1/configuration_pb.js";

/** Result of the latest change, with its warnings. */
export function Notice({ saved }: { readonly saved: ChangeConfigurationResponse | undefined }) {
  return (
    <div role="status">
      {saved !== undefined && (
        <div className="mb-5 space-y-1 rounded-lg bg-good-soft px-4 py-3 text-sm wrap-anywhere text-good">
          <p>{describe(saved)}</p>
          {saved.warnings.map((warning) => (
            <p key={warning}>{warning}</p>
          ))}
        </div>
      )}
    </div>
  );
}

function describe({ version, applied }: ChangeConfigurationResponse): string {
  if (version === undefined) return "Nothing has changed.";
  const what = `Saved as version ${version.version}`;
  return applied ? `${what}, in force.` : `${what}. It is not in force yet; see the log if that does not change.`;
}
