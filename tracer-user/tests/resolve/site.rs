//! A site's own rules before the built-in ones.

use jobtrace::resolve::{Resolver, Role, SiteRule};

fn rule(name: &str, pattern: &str) -> SiteRule {
    SiteRule { name: name.into(), pattern: pattern.into(), manager: None, not_a_job: false }
}

#[test]
fn a_site_says_what_its_layout_means() {
    let mut ours =
        rule("ours", r"/batch/(?<user>[a-z]+)/(?<job>\d+)(?:/(?<step>s\d+)/t(?<task>\d+))?");
    ours.manager = Some("ours".into());
    let both = rule("both", r"/(?<manager>[a-z]+)-farm/u(?<uid>\d+)/(?<job>[^/]+)");
    let mut out = rule("maintenance", "/slurm/uid_0/");
    out.not_a_job = true;
    let resolver = Resolver::new(&[ours, both, out]).unwrap();
    let answer = resolver.path("/batch/ada/12/s3/t4/deeper");
    assert_eq!((answer.manager.as_str(), answer.job.as_str(), answer.root), ("ours", "12", 3));
    let parts = [answer.step, answer.task, answer.user].map(Option::unwrap);
    assert_eq!((parts, answer.rule.as_str()), (["s3", "4", "ada"].map(str::to_owned), "ours"));
    let answer = resolver.path("/render-farm/u77/frame-1");
    let seen = (answer.manager.as_str(), answer.job.as_str(), answer.uid);
    assert_eq!(seen, ("render", "frame-1", Some(77)));
    assert_eq!(resolver.path("/slurm/uid_0/job_1").role, Role::NotAJob);
    assert_eq!(resolver.path("/slurm/uid_1/job_1").rule, "slurm-v1");
    assert_eq!(
        resolver.path("/x/batch/ada/12").rule,
        "unknown",
        "a site's rule is tried from the begin"
    );
}

#[test]
fn a_rule_that_cannot_work_is_refused_by_its_name() {
    let mut broken = rule("mine", "/(?<job>[0-9+)");
    broken.manager = Some("m".into());
    let error = format!("{:#}", Resolver::new(&[broken]).unwrap_err());
    assert!(error.contains("`mine`") && error.contains("unclosed character class"), "{error}");
}
