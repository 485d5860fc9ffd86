// Which processes live on this machine: for locks that must not outlive who took them.

export interface ProcessTable {
  /** The name of this machine or container. */
  readonly host: string;
  readonly processId: number;
  /** Whether a process of that id lives on this host, whoever it belongs to. */
  isAlive(processId: number): boolean;
}
