import { type ComponentType, useEffect, useState } from "react";

/**
 * A component whose code is loaded when it is first shown; until then `Placeholder`, with the same properties, is in its place. It fails
 * like a component if the code cannot be loaded. Not `lazy` of React, which keeps a placeholder for 300 ms once it has appeared: so long
 * a page would not even ask for its data.
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
