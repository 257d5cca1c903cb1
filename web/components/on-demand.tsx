import { type ComponentType, useEffect, useState } from "react";

/**
 * A component whose code is loaded when it is first shown. Until then `Placeholder` is shown, with the same properties. If the code cannot
 * be loaded, rendering throws. Used in place of React's `lazy`, which shows a placeholder for at least 300 ms: a page would request its
 * data that much later.
 */
export function onDemand<P extends object>(
  load: () => Promise<{ readonly default: ComponentType<P> }>,
  Placeholder: ComponentType<P>,
): ComponentType<P> {
  let Loaded: ComponentType<P> | undefined;
  return function OnDemand(properties: P) {
    const [{ failure }, setState] = useState<{ readonly failure?: { readonly error: unknown } }>({});
    useEffect(() => {
      if (Loaded !== undefined) return;
      let isShown = true;
      const loadOnce = async (): Promise<void> => {
        try {
          Loaded = (await load()).default;
          if (isShown) setState({});
        } catch (error) {
          if (isShown) setState({ failure: { error } });
        }
      };
      void loadOnce();
      return () => {
        isShown = false;
      };
    }, []);
    if (failure !== undefined) throw failure.error;
    return Loaded === undefined ? <Placeholder {...properties} /> : <Loaded {...properties} />;
  };
}
