import { readFailure } from "../api/failure.ts";
import { Unavailable } from "../components/alert.tsx";
import { Empty, Page } from "../components/page.tsx";
import { TextLink } from "../components/text-link.tsx";
import { PATHS } from "../paths.ts";

interface NoKeyProps {
  readonly title: string;
  readonly error: unknown;
  readonly onRetry: () => unknown;
}

/** Page about a key that could not be loaded. */
export function NoKey({ title, error, onRetry }: NoKeyProps) {
  return (
    <Page title={title}>
      {readFailure(error)?.fields.has("id") === true ? (
        <Empty title="No such key">
          The key does not exist, or you may not see it. <TextLink to={PATHS.keys}>All keys</TextLink>
        </Empty>
      ) : (
        <Unavailable error={error} onRetry={() => void onRetry()} />
      )}
    </Page>
  );
}
