/** See build-executable.mjs. */
export declare const canBuildExecutable: boolean;
