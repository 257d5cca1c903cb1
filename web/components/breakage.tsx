import { Component, type ReactNode, useEffect, useState } from "react";
import { isReachable, useReconnect } from "../api/reconnect.ts";
import { Apology, Unreachable } from "./alert.tsx";
import { Page, Starting } from "./page.tsx";

interface BreakageProps {
  /** Path of the current page. A new path resets the error. */
  readonly path: string;
  readonly children: ReactNode;
}

interface BreakageState {
  readonly path: string;
  readonly isBroken: boolean;
}

/** Error boundary of a page: its chunks cannot be loaded, were removed by an update, or rendering threw. */
export class Breakage extends Component<BreakageProps, BreakageState> {
  override state = { path: this.props.path, isBroken: false };

  static getDerivedStateFromError(): Partial<BreakageState> {
    return { isBroken: true };
  }

  static getDerivedStateFromProps({ path }: BreakageProps, state: BreakageState): BreakageState | null {
    return path === state.path ? null : { path, isBroken: false };
  }

  override render(): ReactNode {
    return this.state.isBroken ? <Broken /> : this.props.children;
  }
}

const reload = (): void => location.reload();

/** Reloads automatically only if Parley was unreachable. Reloading after a rendering error would loop. */
function Broken() {
  const [isLost, setLost] = useState<boolean>();
  useEffect(() => {
    const stop = new AbortController();
    const probe = async (): Promise<void> => {
      const found = await isReachable(stop.signal);
      if (!stop.signal.aborted) setLost(!found);
    };
    void probe();
    return () => stop.abort();
  }, []);
  useReconnect(isLost === true, reload);
  if (isLost === undefined) return <Starting />;
  if (isLost) {
    return (
      <Page title="No connection">
        <Unreachable onRetry={reload} />
      </Page>
    );
  }
  return (
    <Page title="Something went wrong">
      <Apology action="Reload" onAct={reload}>
        This page could not be loaded. Parley may have been updated: reload the page.
      </Apology>
    </Page>
  );
}
