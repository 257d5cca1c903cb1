/** See node-version.mjs, which any Node from 18 on runs. */
export declare const nodePackages: Readonly<Record<string, string>>;
export declare const packagedNodePath: string | undefined;
