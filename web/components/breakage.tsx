import { Component, type ReactNode } from "react";
import { Button } from "./button.tsx";
import { Page } from "./page.tsx";

interface BreakageProps {
  /** The page that is shown: another one may be whole. */
  readonly path: string;
  readonly children: ReactNode;
}

interface BreakageState {
  readonly path: string;
  readonly isBroken: boolean;
}

/** Stands in for a page that cannot be shown: its files cannot be had, or are gone after an update, or it has a fault. */
export class Breakage extends Component<BreakageProps, BreakageState> {
  override state = { path: this.props.path, isBroken: false };

  static getDerivedStateFromError(): Partial<BreakageState> {
    return { isBroken: true };
  }

  static getDerivedStateFromProps({ path }: BreakageProps, state: BreakageState): BreakageState | null {
    return path === state.path ? null : { path, isBroken: false };
  }

  override render(): ReactNode {
    if (!this.state.isBroken) return this.props.children;
    return (
      <Page title="Out of reach">
        <div role="alert" className="rounded-xl border border-line bg-surface px-6 py-10 text-center">
          <p className="mx-auto max-w-md text-muted">
            This page could not be shown. Check that Parley runs and that you are connected, then load it again.
          </p>
          <Button look="secondary" className="mt-5" onClick={() => location.reload()}>
            Load it again
          </Button>
        </div>
      </Page>
    );
  }
}
