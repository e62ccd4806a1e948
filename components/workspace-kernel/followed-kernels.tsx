"use client";

import { useEffect, useState } from "react";
import { useSeen } from "#components/live/sight.ts";
import { EmptyState } from "#components/ui/empty-state.tsx";
import type { WorkspaceKernels } from "#server/contracts/workspace-kernel.ts";
import { KernelTable } from "./kernel-table.tsx";

/**
 * What runs in a workspace, as its Jupyter server tells at this moment. While nobody sees it, it is not followed, so that
 * the server is not asked and the browser's few connections are left to other tabs.
 */
export function FollowedKernels({
  workspaceId,
  read,
  mayChange,
}: {
  workspaceId: string;
  /** As the page was rendered with. */
  read: WorkspaceKernels;
  mayChange: boolean;
}) {
  const [told, setTold] = useState<WorkspaceKernels>();
  const seen = useSeen();
  useEffect(() => {
    if (!seen) return;
    const stream = new EventSource(`/api/v1/workspaces/${workspaceId}/kernels?follow`);
    stream.addEventListener("workspace-kernels", ({ data }: MessageEvent<string>) => {
      setTold(JSON.parse(data) as WorkspaceKernels);
    });
    return () => {
      stream.close();
      // What the page reads meanwhile is newer.
      setTold(undefined);
    };
  }, [workspaceId, seen]);
  const { state, kernels } = told ?? read;
  switch (state) {
    case "not running":
      return (
        <EmptyState title="The workspace is not running">Start the workspace to see its running notebooks.</EmptyState>
      );
    case "no answer":
      return (
        <EmptyState title="The workspace's Jupyter server does not answer">
          It may be busy or about to start. It is asked again every second; if it stays so, restart the workspace.
        </EmptyState>
      );
    case "ok":
      if (kernels.length > 0) return <KernelTable {...{ workspaceId, kernels, mayChange }} />;
      return (
        <EmptyState title="No notebook runs">
          Open the workspace and start one; what it does and which GPU it holds stands here then.
        </EmptyState>
      );
  }
}
