/** Where the parts of a workspace lie, as its processes see them. */
export type Layout = {
  home: string;
  /** The datasets, a folder each; the home has links to them. */
  datasets: string;
  environment: string;
  packages: string;
  run: string;
  /** The sockets of the gpuds on this host, a file each; those of a local launcher's alone are there. */
  gpuds: string;
  jupyterConfig: string;
  tmp: string;
};

/** In a sandbox and in a container. */
export const insideLayout: Layout = {
  home: "/home/user",
  datasets: "/datasets",
  environment: "/opt/sluice/environment",
  packages: "/opt/sluice/packages",
  run: "/run/sluice",
  gpuds: "/run/sluice-gpud",
  jupyterConfig: "/opt/sluice/jupyter",
  tmp: "/tmp",
};
