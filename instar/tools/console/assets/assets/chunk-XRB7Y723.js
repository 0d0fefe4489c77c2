var e="/console/api/review",n="/console/api/rules",r="/console/api/convert",t="/console/api/check",s="/console/api/webhooks";export{e as a,n as b,r as c,t as d,s as e};
