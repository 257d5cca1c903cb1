import { Component, type ReactNode } from "react";
import { Button } from "./button.tsx";

/** Stands in for a page that cannot be shown: its files are gone after an update, or it has a fault. */
export class Breakage extends Component<{ readonly children: ReactNode }, { readonly isBroken: boolean }> {
  override state = { isBroken: false };

  static getDerivedStateFromError(): { isBroken: boolean } {
    return { isBroken: true };
  }

  override render(): ReactNode {
    if (!this.state.isBroken) return this.props.children;
    return (
      <div role="alert" className="rounded-xl border border-line bg-surface px-6 py-10 text-center">
        <p className="text-muted">This page could not be shown. Parley may have been updated meanwhile.</p>
        <Button look="secondary" className="mt-5" onClick={() => location.reload()}>
          Load it again
        </Button>
      </div>
    );
  }
}
