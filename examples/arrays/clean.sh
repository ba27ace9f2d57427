#!/bin/sh
# One task of a job array: cleans one slice of a list of WET files, into a work folder of its own.
#
#     clean.sh LIST FILES_PER_TASK WORK [OPTIONS OF c4pipe clean]
#
# LIST has one path or URL of a WET file on each line. The task with index 3 writes the work folder WORK/00003.
# docs/batch_systems.md shows how to submit it.
#
#SBATCH --job-name=clean
#SBATCH --output=%x-%A_%a.log
#SBATCH --open-mode=append
#SBATCH --cpus-per-task=8
#SBATCH --mem-per-cpu=2G
#SBATCH --time=4:00:00
#SBATCH --requeue
set -eu

list=$1 files_per_task=$2 work=$3
shift 3

# Slurm, AWS Batch, Google Batch, Kubernetes: each has a name of its own for the index, which starts at 0.
index=${SLURM_ARRAY_TASK_ID:-${AWS_BATCH_JOB_ARRAY_INDEX:-${BATCH_TASK_INDEX:-${JOB_COMPLETION_INDEX:-}}}}
: "${index:?this is not a task of an array: no variable has its index}"

first=$((index * files_per_task + 1))
last=$((first + files_per_task - 1))
files=$(sed -n "$first,${last}p" "$list")
if [ -z "$files" ]; then
    echo "task $index: nothing to do, because $list ends before line $first"
    exit 0
fi

# The list of the slice comes from standard input.
exec c4pipe clean @/dev/stdin --work "$work/$(printf %05d "$index")" "$@" <<END
$files
END
